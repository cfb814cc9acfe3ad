"""Makes tools/ importable: the registry and its checker are development tools, not part of the
package.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

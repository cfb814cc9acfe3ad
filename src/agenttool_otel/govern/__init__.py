"""What people hold in hand: govern, Governor and the tools that the package brings itself."""

"""What a policy's words can mean: types of its expressions, its closed lists of words, and slips in
both. No program is needed for it.
"""

"""The standard's acceptance scenarios, run against this package or any module that offers the same
four functions.
"""

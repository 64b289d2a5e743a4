"""What the manual is made with: its site, the generated parts of the reference, its pictures.

It is not part of the package that is installed.
"""

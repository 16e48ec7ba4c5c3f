"""The zoo: one broken Foliot for each guard that keeps it correct, and what catches it.

`make chaos-zoo` copies the sources, takes one guard out of the copy, and runs what is meant to
notice: a named test, or a seeded chaos run whose checker must name the invariant. A guard that can
be taken out unnoticed is not known to work. Nothing of this is in the product.
"""

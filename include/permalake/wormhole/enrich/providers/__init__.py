"""Price providers: each module here is one, named as ``prices.provider`` in the configuration names it.

A module has ``open_provider(context)``, which returns a ``PriceProvider``. The configuration accepts the
names of the modules, so that a new provider is one new file.
"""

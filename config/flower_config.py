"""The configuration file that `ringhaul flower` gives to Flower.

It sets nothing: the options are in `celery_config.FLOWER_ARGUMENTS`. It is there because Flower
would run a `flowerconfig.py` of the current folder otherwise.
"""

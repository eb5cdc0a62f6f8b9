"""Files of agents and checkpoints: whole, checked, and never pickled.

How bytes get to the disk lives in ``generala_env.files``; folders of runs in ``runs``.
Start with ``agent_files.py``.
"""

"""How good an agent is: exactly where it can be asked everything, by games where not; and the report.

The mathematics of following a policy lives in ``generala_env.solver``; matches in ``matches``.
Start with ``exact.py``; ``report.py`` makes the page.
"""

"""Every kill point: one run is recorded, what a crash can leave is enumerated, and recovery from each state is judged.

*Record* (``recording``) → ``operations`` → *enumerate* (``models``, ``enumeration``) → ``states`` → *judge* (``judging``, ``executors``)
→ *report* (``vulnerabilities``, ``result``).
"""

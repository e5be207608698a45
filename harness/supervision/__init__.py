"""System calls of a job, held by the kernel until we have answered: a seccomp user-notification supervisor.

Standard library only, and light: it starts in front of attempts. Unprivileged; x86-64 and aarch64; all threads and children, any language.
"""

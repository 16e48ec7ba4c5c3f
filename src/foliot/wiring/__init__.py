"""The composition root: here, and only here, parts are chosen and joined. One file per process."""

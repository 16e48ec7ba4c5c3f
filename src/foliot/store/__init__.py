"""PostgreSQL, the only truth: the one package that speaks SQL to it."""

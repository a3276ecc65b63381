"""Pure statistics: a table in, a table out."""

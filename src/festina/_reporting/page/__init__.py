"""The page that `festina reproduce` writes: one HTML file with its style and script inside."""

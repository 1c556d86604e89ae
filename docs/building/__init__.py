"""What makes the generated pages of the site: reference, gallery, guides, mathematics."""

"""What a study answers: tables, figures and a page, from the cells that are finished."""

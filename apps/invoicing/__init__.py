"""Rating, invoices, credit notes, exports."""

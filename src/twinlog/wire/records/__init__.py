"""Record batches: headers read in place, records only when asked."""

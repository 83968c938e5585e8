"""What a course needs: numbers of a student's own, and submitted notebooks run again. Importing it imports no torch."""

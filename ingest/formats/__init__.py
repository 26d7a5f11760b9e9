"""From a file's bytes to pages of readable text: PDF, HTML, plain text, scans."""

"""The pages of many audits: what lies under a folder, listed, compared and shown in the browser."""

// The words for tools. Pages for inspection show the names of tools; the conversation and the inbox describe the
// agent's actions.
const names: Record<string, string> = {
  shell: 'Run a command',
  read_file: 'Read a file',
  write_file: 'Write a file',
  edit_file: 'Edit a file',
  apply_patch: 'Change files',
  list_files: 'List files',
  find_files: 'Find files',
  search_files: 'Search files',
  fetch_url: 'Fetch a page',
  update_plan: 'Update the plan',
  ask_user: 'Ask a question',
  delegate: 'Delegate to a sub-agent',
  schedule_follow_up: 'Schedule a follow-up',
  finalize_task: 'Finish the task',
}

// toolName is the name of a tool in words; an MCP tool keeps its own.
export function toolName(tool: string): string {
  return names[tool] ?? tool
}

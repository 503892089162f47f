// The approval modes of agents, in words.
export const approvalModes = {
  suggest: 'suggest: edits and commands need approval',
  'auto-edit': 'auto-edit: edits run, commands need approval',
  'full-auto': 'full-auto: everything runs in the sandbox',
}

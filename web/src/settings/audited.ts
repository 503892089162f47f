import { fields, str } from '../wire/read'

// The words for the actions that the audit records.
const words: Record<string, string> = {
  'message.sent': 'Message sent',
  'agent.message.ws': 'Message sent over a WebSocket',
  'message.blocked': 'Message blocked',
  'access.denied': 'Access denied',
  'auth.denied': 'Sign-in refused',
  'approval.resolved': 'Approval decided',
  'grant.revoked': '“Always” rule revoked',
  'tool.started': 'Tool call started',
  'tool.executed': 'Tool call finished',
  'tool.failed': 'Tool call failed',
  'tool.blocked': 'Tool call blocked',
  'tool.resolved': 'Unknown outcome of a tool call decided',
  'plan.decided': 'Plan decided',
  'settings.changed': 'Settings changed',
  'tools.accepted': 'Tools of a server accepted',
  'session.halted': 'Conversation halted',
  'session.reopened': 'Conversation reopened',
  'session.deleted': 'Conversation deleted',
  'session.read': 'Conversation of another user read',
  'session.renamed': 'Conversation renamed',
  'session.forked': 'Conversation forked',
  'session.exported': 'Conversation exported',
  'file.read': 'File read',
  'token.minted': 'Token created',
  'ticket.issued': 'Ticket issued',
  'principal.revoked': 'Tokens of a user revoked',
  'user.signed_in': 'Signed in',
  'user.signed_out': 'Signed out',
  'agent.started': 'Agent started',
  'agent.stopped': 'Agent stopped',
  'agent.created': 'Agent created or changed',
  'agent.deleted': 'Agent deleted',
  'agent.overridden': 'Idle prompt of an agent changed',
  'context.applied': 'Context of a user applied',
  'mission.set': 'Mission set',
  'mission.cleared': 'Mission ended',
  'webhook.set': 'Webhook set',
  'webhook.removed': 'Webhook removed',
  'webhook.tested': 'Webhook tested',
  'tool_servers.chosen': 'Tool servers of a conversation chosen',
  'model_key.set': 'Key of a model vendor entered',
  'model_key.removed': 'Key of a model vendor removed',
  'model_key.tested': 'Key of a model vendor tested',
  'mcp_server.set': 'Tool server added or changed',
  'mcp_server.removed': 'Tool server removed',
  'mcp_server.tested': 'Tool server tested',
  'audit.sealed': 'Earlier records sealed with a key',
}

// actions lists the known actions with their words, sorted by words.
export const actions = Object.entries(words).sort(([, a], [, b]) => a.localeCompare(b))

// wordsOf describes an action; an unknown one keeps its name.
export function wordsOf(action: string): string {
  return words[action] ?? action
}

const results: Record<string, string> = {
  allow: 'allowed',
  always: 'always allowed',
  deny: 'denied',
  stop: 'denied, and the run stopped',
  mark_done: 'marked as done',
  rerun: 'run again',
  abandon: 'run stopped',
}

// aboutOf returns the part of a record's metadata that a person looks for: the tool, the decision, the receiver.
export function aboutOf(metadata: unknown): string {
  const { tool_name, decision, resolution, target } = fields(metadata)
  const result = str(decision) || str(resolution)
  return [str(tool_name), results[result] ?? result, str(target)].filter((text) => text !== '').join(', ')
}

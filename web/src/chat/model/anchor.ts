import type { ChatMessage } from './message'

// Addresses of messages: /chat/<session>#m17 is the message with number 17 in the log.

// anchorOf returns the part of the address that names a message; undefined: the message cannot be named.
export function anchorOf({ inputId }: Pick<ChatMessage, 'inputId'>): string | undefined {
  const seq = /\.(\d+)$/.exec(inputId ?? '')?.[1]
  return seq === undefined ? undefined : `m${seq}`
}

// whoReads returns a phrase for the users who can read a conversation at its address.
export function whoReads(auth: string | undefined): string {
  return auth === 'local'
    ? 'Everybody who can open this server on this machine can read it.'
    : 'You and the administrators of your organisation can read it.'
}

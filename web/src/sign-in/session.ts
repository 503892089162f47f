import { ask } from '../wire/api'

// The session of a signed-in user is a cookie that scripts cannot read. All tabs of the browser share it, so they tell
// each other when it comes or goes.
const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel('parley.sign-in')

export async function signIn(token: string): Promise<void> {
  await ask('POST', '/auth/session', { body: { token } })
  channel?.postMessage('changed')
}

// signOut has the server revoke the session and remove the cookie.
export async function signOut(): Promise<void> {
  await ask('POST', '/auth/logout', { body: {} })
  channel?.postMessage('changed')
}

// onSignInElsewhere calls a function when the user signs in or out in another tab.
export function onSignInElsewhere(tell: () => void): () => void {
  channel?.addEventListener('message', tell)
  return () => channel?.removeEventListener('message', tell)
}

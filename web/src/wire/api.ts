// Requests to the server. An error response becomes a Problem with a message for the user.

// A Problem is the reason why a request failed.
export class Problem extends Error {
  readonly status: number // 0: the server was not reached
  readonly code: string

  constructor(message: string, status: number, code = '') {
    super(message)
    this.name = 'Problem'
    this.status = status
    this.code = code
  }

  // again reports whether a retry may help.
  get again(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500
  }
}

let refused = () => {}

// onRefused sets the function to call when the server answers 401.
export function onRefused(tell: () => void): void {
  refused = tell
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Asking {
  body?: unknown
  signal?: AbortSignal
  // once gives a command one effect, however often it is sent.
  once?: string
}

// send sends a request and returns the response as it arrives. It throws a refusal as a Problem.
export async function send(method: Method, path: string, { body, signal, once }: Asking = {}): Promise<Response> {
  const headers = new Headers({ Accept: 'application/json' })
  if (once !== undefined) headers.set('Idempotency-Key', once)
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    })
  } catch (error) {
    throw unreachable(error, signal)
  }
  if (response.ok) return response
  if (response.status === 401) refused()
  throw problemOf(response, await response.text().catch(() => ''))
}

// unreachable is the Problem of a server that cannot be reached, unless the caller has given up.
export function unreachable(error: unknown, signal?: AbortSignal): unknown {
  return signal?.aborted ? error : new Problem('The server cannot be reached.', 0)
}

export async function ask<T>(method: Method, path: string, asking: Asking = {}): Promise<T> {
  const response = await send(method, path, asking)
  let text: string
  try {
    text = await response.text()
  } catch (error) {
    throw unreachable(error, asking.signal)
  }
  if (text === '') return undefined as T
  try {
    return JSON.parse(text) as T
  } catch {
    throw new Problem('The server’s answer is not JSON.', response.status)
  }
}

// Refusals come as {"error":"why"} or {"error":{"code","message"}}.
function problemOf(response: Response, text: string): Problem {
  let why = ''
  let code = ''
  try {
    const error: unknown = (JSON.parse(text) as { error?: unknown }).error
    if (typeof error === 'string') why = error
    else if (typeof error === 'object' && error !== null) {
      const { message, code: name } = error as { message?: unknown; code?: unknown }
      if (typeof message === 'string') why = message
      if (typeof name === 'string') code = name
    }
  } catch {
    why = text.trim().slice(0, 200)
  }
  return new Problem(why || `The server answered ${response.status} ${response.statusText}.`, response.status, code)
}

// socketURL returns the address of a socket. The cookie of a signed-in user opens no socket, so it is first exchanged
// for a ticket, which is valid once, for seconds. The ticket for an agent's debug console names the agent.
export async function socketURL(path: string, agent?: string): Promise<string> {
  const url = new URL(path, location.href)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  if (signedInByCookie) {
    const { ticket } = await ask<{ ticket: string }>('POST', '/api/v1/tickets', { body: { agent } })
    url.searchParams.set('ticket', ticket)
  }
  return url.href
}

let signedInByCookie = false

// byCookie sets whether the user is signed in by a cookie: always, except in local mode.
export function byCookie(is: boolean): void {
  signedInByCookie = is
}

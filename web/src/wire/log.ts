import { Problem, token } from './api'
import type { LogLine } from './log.generated'

// An event as a log has it. The body is read by its type, and with care: later
// releases may have types that this one does not know.
export interface LogEvent extends LogLine {
  type: string
  body?: Record<string, unknown>
}

export interface Reading {
  after?: number // a seq
  until?: (event: LogEvent) => boolean // the last event that is wanted
  signal?: AbortSignal
}

// readLog fetches the log of a session, up to its head. It comes as JSON lines;
// one that cannot be read is passed over.
export async function readLog(session: string, { after = 0, until, signal }: Reading = {}): Promise<LogEvent[]> {
  const headers = new Headers()
  const bearer = token()
  if (bearer !== null) headers.set('Authorization', `Bearer ${bearer}`)
  let response: Response
  try {
    response = await fetch(`/api/v1/sessions/${encodeURIComponent(session)}/log${after > 0 ? `?after=${after}` : ''}`, {
      headers,
      signal,
    })
    if (response.ok && response.body !== null) return await take(response.body, until)
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Problem('The server cannot be reached.', 0)
  }
  throw new Problem(`The log could not be read: the server answered ${response.status}.`, response.status)
}

// take reads lines as they come, so that of a long log no more is fetched than is
// wanted.
async function take(body: ReadableStream<Uint8Array>, until: Reading['until']): Promise<LogEvent[]> {
  const events: LogEvent[] = []
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    rest += decoder.decode(value, { stream: !done })
    const end = done ? rest.length : rest.lastIndexOf('\n') + 1
    for (const event of parseLog(rest.slice(0, end))) {
      events.push(event)
      if (until?.(event) !== true) continue
      await reader.cancel()
      return events
    }
    rest = rest.slice(end)
    if (done) return events
  }
}

export function parseLog(text: string): LogEvent[] {
  const events: LogEvent[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    try {
      const event = JSON.parse(line) as LogEvent
      if (typeof event.seq === 'number' && typeof event.type === 'string') events.push(event)
    } catch {
      console.warn('not an event', line)
    }
  }
  return events
}

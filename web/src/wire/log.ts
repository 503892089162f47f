import { Problem, token } from './api'

// An event as a log has it. The body is read by its type, and with care: later
// releases may have types that this one does not know.
export interface LogEvent {
  session: string
  seq: number
  position: number
  root: string
  at: string
  run?: number
  by?: string
  type: string
  body?: Record<string, unknown>
}

// readLog fetches the log of a session, up to its head, after a seq. It comes as
// JSON lines; one that cannot be read is passed over.
export async function readLog(session: string, after = 0, signal?: AbortSignal): Promise<LogEvent[]> {
  const headers = new Headers()
  const bearer = token()
  if (bearer !== null) headers.set('Authorization', `Bearer ${bearer}`)
  let response: Response
  try {
    response = await fetch(`/api/v1/sessions/${encodeURIComponent(session)}/log${after > 0 ? `?after=${after}` : ''}`, { headers, signal })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Problem('The server cannot be reached.', 0)
  }
  const text = await response.text()
  if (!response.ok) throw new Problem(`The log could not be read: the server answered ${response.status}.`, response.status)
  return parseLog(text)
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

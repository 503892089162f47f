import { send, unreachable } from './api'
import type { LogEvent } from './log.generated'

export interface Reading {
  after?: number // a seq
  until?: (event: LogEvent) => boolean // true for the last event to read
  signal?: AbortSignal
}

// readLog fetches the log of a session, up to its head. It comes as JSON lines;
// unreadable lines are skipped.
export async function readLog(session: string, { after = 0, until, signal }: Reading = {}): Promise<LogEvent[]> {
  const query = after > 0 ? `?after=${after}` : ''
  const response = await send('GET', `/api/v1/sessions/${encodeURIComponent(session)}/log${query}`, { signal })
  if (response.body === null) return []
  try {
    return await take(response.body, until)
  } catch (error) {
    throw unreachable(error, signal)
  }
}

// take reads lines as they arrive, so that no more of a long log is fetched
// than needed.
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

// parseLog reads lines. An event may have a type from a later release: switches ignore it.
export function parseLog(text: string): LogEvent[] {
  const events: LogEvent[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    try {
      const event = { body: {}, ...(JSON.parse(line) as object) } as LogEvent
      if (typeof event.seq === 'number' && typeof event.type === 'string') events.push(event)
    } catch {
      console.warn('A broken line of the log was skipped.', line.slice(0, 200))
    }
  }
  return events
}

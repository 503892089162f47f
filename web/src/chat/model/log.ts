// Reading a session's log: one event per line, which is more than JSON.parse takes.

import { Problem, token } from '../../wire/api'

export interface LogEvent {
  seq: number
  at: string
  run?: number
  type: string
  body: unknown
}

export interface Log {
  events: LogEvent[]
  more: boolean // there are events after these
}

// readLog reads at most so many events after a seq, and no more than it has to.
export async function readLog(session: string, after: number, most: number, signal?: AbortSignal): Promise<Log> {
  const headers = new Headers({ Accept: 'application/x-ndjson, application/json' })
  const bearer = token()
  if (bearer !== null) headers.set('Authorization', `Bearer ${bearer}`)
  let response: Response
  try {
    response = await fetch(`/api/v1/sessions/${encodeURIComponent(session)}/log?after=${Math.max(0, after)}`, {
      headers,
      signal,
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Problem('The server cannot be reached.', 0)
  }
  if (!response.ok || response.body === null)
    throw new Problem(`The server answered ${response.status} ${response.statusText}.`, response.status)
  const events: LogEvent[] = []
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line === '') continue
        if (events.length === most) return { events, more: true }
        try {
          events.push(JSON.parse(line) as LogEvent)
        } catch {
          console.warn('A broken line of the log was skipped.')
        }
      }
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
  return { events, more: false }
}

// inputImages are the images somebody has sent with an input, as data URLs.
export async function inputImages(inputId: string, signal?: AbortSignal): Promise<string[]> {
  const cut = inputId.lastIndexOf('.')
  const { events } = await readLog(inputId.slice(0, cut), Number(inputId.slice(cut + 1)) - 1, 1, signal)
  const images = (events[0]?.body as { images?: { type?: string; data?: string }[] } | undefined)?.images ?? []
  return images.map(({ type, data }) =>
    /^image\/(png|jpeg|gif|webp)$/.test(type ?? '') ? `data:${type};base64,${data ?? ''}` : '',
  )
}

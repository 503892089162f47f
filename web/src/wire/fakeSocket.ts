// For tests: a WebSocket whose other end is the test.
export class FakeSocket {
  static made: FakeSocket[] = []
  static readonly OPEN = 1

  readonly url: string
  readyState = 0
  sent: unknown[] = []
  private dropped = false
  closed: number | undefined // the code with which this side closed it
  onopen: (() => void) | null = null
  onmessage: ((event: { data: unknown }) => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  onerror: (() => void) | null = null

  constructor(url: string) {
    this.url = url
    FakeSocket.made.push(this)
  }

  static get last(): FakeSocket {
    return FakeSocket.made.at(-1)!
  }

  send(data: string): void {
    this.sent.push(JSON.parse(data))
  }

  close(code = 1005): void {
    this.readyState = 3
    this.closed = code
  }

  open(): void {
    this.readyState = 1
    this.onopen?.()
  }

  say(frame: unknown): void {
    this.onmessage?.({ data: typeof frame === 'string' ? frame : JSON.stringify(frame) })
  }

  // A socket can be closed only once.
  drop(code = 1006, reason = ''): void {
    if (this.dropped) return
    this.dropped = true
    this.readyState = 3
    this.onclose?.({ code, reason })
  }
}

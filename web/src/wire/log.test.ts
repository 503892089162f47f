import { expect, it, vi } from 'vitest'
import { parseLog, readLog } from './log'

it('reads a log line by line, and passes over what is none', () => {
  expect(parseLog('{"seq":1,"type":"A"}\n\n{"seq":"2"}\n{"seq":3,"type":"B"}\n').map((one) => one.seq)).toEqual([1, 3])
})

it('reads no more of a log than is wanted, wherever it is cut', async () => {
  const lines = new TextEncoder().encode('{"seq":1,"type":"Ä"}\n{"seq":2,"type":"RunFinished"}\n{"seq":3,"type":"B"}\n')
  const pieces = (size: number) =>
    new ReadableStream<Uint8Array>({
      start(to) {
        for (let at = 0; at < lines.length; at += size) to.enqueue(lines.slice(at, at + size))
        to.close()
      },
    })
  for (const size of [1, 2, 3, 7, 1000]) {
    vi.stubGlobal('fetch', async () => new Response(pieces(size)))
    expect((await readLog('s')).map((one) => one.type)).toEqual(['Ä', 'RunFinished', 'B'])
    vi.stubGlobal('fetch', async () => new Response(pieces(size)))
    expect((await readLog('s', { until: (one) => one.type === 'RunFinished' })).map((one) => one.seq)).toEqual([1, 2])
  }
  vi.unstubAllGlobals()
})

// A conversation of ten thousand messages, which the browser gets in place of the server's.
import { Chat } from './chat.mjs'
import { Visitor } from './browser.mjs'
import { Server, until } from './server.mjs'

export const session = '550e8400-e29b-41d4-a716-446655440000'

function conversation() {
  let seq = 0
  const message = (rest) => ({
    id: `m-${(seq += 8)}`,
    seq,
    rev: seq,
    ts_ms: 1_760_000_000_000 + seq,
    agent_id: 'coder',
    session_id: session,
    ...rest,
  })
  const runs = (from, to) => {
    const list = []
    for (let i = from; i < to; i++) {
      list.push(
        message({
          kind: 'message',
          text: `Question ${i}.`,
          data: { from: 'user', to: 'coder', role: 'user', input_id: `${session}.${i}` },
        }),
        message({ kind: 'activity', phase: 'doing', text: 'Model loading...', data: { status: 'model_loading' } }),
        message({ kind: 'text_segment', text: `Answer ${i}. `.repeat((i % 40) + 1) }),
        message({ kind: 'run', phase: 'outcome', data: { outcome: { type: 'none', run_status: 'completed' } } }),
      )
    }
    return list
  }
  return { message, earlier: runs(0, 100), messages: runs(100, 5100), cursor: () => `e-${seq}` }
}

// openLong opens it in a browser; first may set up further routes.
export async function openLong(t, first = async () => {}) {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
  await first(visitor)
  const talk = conversation()
  let hold
  const asked = new Promise((resolve) => {
    hold = { asked: resolve }
  })
  const released = new Promise((resolve) => {
    hold.release = resolve
  })
  await visitor.context.route('**/api/history?*', async (route) => {
    const cursor = talk.cursor()
    if (!new URL(route.request().url()).searchParams.has('before'))
      return route.fulfill({ json: { messages: talk.messages, cursor, earlier: 'before' } })
    hold.asked()
    await released
    return route.fulfill({ json: { messages: talk.earlier, cursor, earlier: null } })
  })
  await visitor.context.route(`**/api/v1/sessions/${session}`, (route) =>
    route.fulfill({ json: { id: session, root: session, title: 'Long', agent: 'coder', status: 'idle' } }),
  )
  await visitor.context.route(`**/api/v1/sessions/${session}/grants`, (route) => route.fulfill({ json: { grants: [] } }))
  await visitor.context.route(`**/api/v1/sessions/${session}/marks`, (route) => route.fulfill({ json: {} }))
  await visitor.context.route(`**/api/v1/sessions/${session}/log`, (route) => route.fulfill({ body: '' }))
  await visitor.context.route(`**/api/v1/sessions/${session}/branches?*`, (route) =>
    route.fulfill({ json: { branches: [] } }),
  )
  await visitor.context.route('**/api/v1/runs?*', (route) => route.fulfill({ json: { runs: [] } }))
  let socket
  await visitor.context.routeWebSocket(/api\/events\?session_id/, (ws) => {
    socket = ws
  })
  const page = await visitor.tab(`/chat/${session}`)
  await until('it is followed', () => socket !== undefined)
  const chat = new Chat(page)
  await chat.answers.getByText('Answer 5099.').waitFor()
  const say = (rest) => socket.send(JSON.stringify(talk.message(rest)))
  const left = () => chat.log.evaluate((e) => e.scrollHeight - e.clientHeight - e.scrollTop)
  const go = (top) => chat.log.evaluate((e, to) => e.scrollTo(0, to < 0 ? e.scrollHeight + to : to), top)
  return { page, chat, say, left, go, hold: { asked, release: hold.release } }
}

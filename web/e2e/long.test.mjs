// A conversation of ten thousand messages: what is drawn is what is in view, the
// view follows only who is at the end, and an earlier page moves nothing.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { Server, test, until, Visitor } from './lib/index.mjs'

const session = '550e8400-e29b-41d4-a716-446655440000'

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

async function open(t) {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
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

test('ten thousand messages: only what is in view is drawn, and the end is followed', async (t) => {
  const { page, chat, say, left, go } = await open(t)
  await until('it opens at its end', async () => (await left()) < 2)
  assert((await chat.log.getByRole('article').count()) < 60)

  say({
    kind: 'message',
    text: 'One more.',
    data: { from: 'user', to: 'coder', role: 'user', input_id: `${session}.9` },
  })
  for (let i = 0; i < 200; i++) say({ kind: 'token', text: `word ${i}\n\n` })
  await chat.answers.getByText('word 199').waitFor()
  await until('who is at the end stays there', async () => (await left()) < 2)

  await go(-4000)
  const back = page.getByRole('button', { name: 'Go to the latest message' })
  await back.waitFor()
  const top = await chat.log.evaluate((e) => e.scrollTop)
  for (let i = 200; i < 300; i++) say({ kind: 'token', text: `word ${i}\n\n` })
  await until('it has grown', async () => (await left()) > 6000)
  assert.equal(await chat.log.evaluate((e) => e.scrollTop), top, 'who reads above is left alone')
  await back.click()
  await chat.answers.getByText('word 299').waitFor()
  await until('the button leads to the end', async () => (await left()) < 2)
})

test('ten thousand messages: an earlier page is put in front and moves nothing', async (t) => {
  const { chat, go, hold } = await open(t)
  await go(900) // measured before the top is near
  await until('what is there is drawn', () => chat.log.getByText('Question 104.').count())
  await go(400)
  await hold.asked
  const seen = chat.log.getByText('Question 102.', { exact: true })
  await seen.waitFor()
  let before
  await until('the view rests', async () => {
    const { y } = await seen.boundingBox()
    const rests = y === before
    before = y
    return rests
  })
  hold.release()
  await until('there is more above', async () => (await chat.log.evaluate((e) => e.scrollTop)) > 2000)
  let after
  await until('the view rests again', async () => {
    const { y } = await seen.boundingBox()
    const rests = y === after
    after = y
    return rests
  })
  assert(Math.abs(after - before) <= 1, `it moved from ${before} to ${after}`)
})

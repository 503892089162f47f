// A conversation of ten thousand messages: only the visible part is rendered,
// the view follows only a reader at the end, and an earlier page moves nothing.
import assert from 'node:assert/strict'
import { test, until } from './lib/index.mjs'
import { openLong, session } from './lib/long.mjs'

// resting returns a place when it has not changed between two looks.
async function resting(place) {
  let last
  await until('the view rests', async () => {
    const before = last
    last = await place()
    return last === before
  })
  return last
}

test('ten thousand messages: only what is in view is drawn, and the end is followed', async (t) => {
  const { page, chat, say, left, go } = await openLong(t)
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
  const top = await resting(() => chat.log.evaluate((e) => e.scrollTop))
  for (let i = 200; i < 300; i++) say({ kind: 'token', text: `word ${i}\n\n` })
  await until('it has grown', async () => (await left()) > 6000)
  assert.equal(await chat.log.evaluate((e) => e.scrollTop), top, 'who reads above is left alone')
  await back.click()
  await chat.answers.getByText('word 299').waitFor()
  await until('the button leads to the end', async () => (await left()) < 2)
})

test('ten thousand messages: an earlier page is put in front and moves nothing', async (t) => {
  const { chat, go, hold } = await openLong(t)
  await go(900) // measured before the top is near
  await until('what is there is drawn', () => chat.log.getByText('Question 104.').count())
  await go(400)
  await hold.asked
  const seen = chat.log.getByText('Question 102.', { exact: true })
  await seen.waitFor()
  const before = await resting(async () => (await seen.boundingBox()).y)
  hold.release()
  await until('there is more above', async () => (await chat.log.evaluate((e) => e.scrollTop)) > 2000)
  const after = await resting(async () => (await seen.boundingBox()).y)
  assert(Math.abs(after - before) <= 1, `it moved from ${before} to ${after}`)
})

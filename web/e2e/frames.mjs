// Prints the long tasks of the page's main thread, from a Chromium trace, while a user scrolls ten thousand messages,
// scrolls a thousand conversations and searches them: node frames.mjs
import { after, test } from 'node:test'
import { closeBrowser } from './lib/browser.mjs'
import { openLong, session } from './lib/long.mjs'

const frame = 1000 / 60 // milliseconds

const conversations = Array.from({ length: 1000 }, (_, i) => ({
  id: `${session.slice(0, -4)}${String(i).padStart(4, '0')}`,
  root: `${session.slice(0, -4)}${String(i).padStart(4, '0')}`,
  owner: 'local',
  agent: 'coder',
  title: `Conversation ${i} about ${['tests', 'caches', 'plans'][i % 3]}`,
  status: 'idle',
  transient: false,
  head: 9,
  opened_at: new Date(1_760_000_000_000 - i * 3_600_000).toISOString(),
  updated_at: new Date(1_760_000_000_000 - i * 3_600_000).toISOString(),
}))

// traced records the tasks of the main thread while something is done.
async function traced(page, name, act) {
  const cdp = await page.context().newCDPSession(page)
  const events = []
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...value))
  const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve))
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] },
  })
  const frames = await act()
  await cdp.send('Tracing.end')
  await complete
  await cdp.detach()
  const main = new Set(
    events
      .filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain')
      .map((e) => `${e.pid} ${e.tid}`),
  )
  const tasks = events
    .filter((e) => e.name === 'RunTask' && e.ph === 'X' && main.has(`${e.pid} ${e.tid}`))
    .map((e) => e.dur / 1000)
    .sort((a, b) => b - a)
  const long = tasks.filter((ms) => ms > frame)
  const worst = tasks.slice(0, 5).map((ms) => ms.toFixed(1))
  console.log(`${name}: ${tasks.length} tasks, ${long.length} longer than a frame; the longest ${worst.join(', ')} ms`)
  const gaps = frames.filter((ms) => ms > 2 * frame).length
  console.log(`  ${frames.length} frames, ${gaps} of them late by a frame or more`)
}

// scroll moves an element by a step in every frame, and returns the time that each frame took.
const scroll = (locator, steps, by) =>
  locator.evaluate(
    (element, { steps, by }) =>
      new Promise((resolve) => {
        const took = []
        let last = performance.now()
        const step = (now) => {
          took.push(now - last)
          last = now
          element.scrollBy(0, by)
          if (took.length < steps) requestAnimationFrame(step)
          else resolve(took)
        }
        requestAnimationFrame(step)
      }),
    { steps, by },
  )

test('long frames', async (t) => {
  const { page, chat } = await openLong(t, (visitor) =>
    visitor.context.route(/\/api\/v1\/sessions\?/, (route) => {
      const query = new URL(route.request().url()).searchParams
      const found = conversations.filter(({ title }) => title.includes(query.get('search') ?? ''))
      return route.fulfill({ json: { sessions: query.has('pinned') ? [] : found } })
    }),
  )
  const rail = page.getByRole('link', { name: /^Conversation 0 / })
  await rail.waitFor()
  const list = page.locator('nav, aside, div').filter({ has: rail }).filter({ has: page.locator('ul') }).last()
  const box = await list.evaluateHandle((element) => {
    let at = element
    const scrolls = (e) => e.scrollHeight > e.clientHeight + 50 && /auto|scroll/.test(getComputedStyle(e).overflowY)
    while (at !== null && !scrolls(at)) at = at.parentElement
    return at
  })
  await traced(page, 'scroll 10,000 messages', () => scroll(chat.log, 300, -400))
  await traced(page, 'scroll 1,000 conversations', () => scroll(box.asElement(), 200, 200))
  await traced(page, 'search 1,000 conversations', async () => {
    const field = page.getByRole('searchbox').first()
    const frames = scroll(box.asElement(), 120, 0)
    for (const letter of 'caches') await field.press(letter)
    await rail.waitFor({ state: 'detached' }) // the first conversation is about something else
    return frames
  })
})

after(closeBrowser)

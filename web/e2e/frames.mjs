// Prints the long tasks of the page's main thread and what they did, from a Chromium trace, while a user scrolls ten thousand messages,
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

// traced records the tasks of the main thread during an action.
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
  const work = events.filter((e) => e.ph === 'X' && main.has(`${e.pid} ${e.tid}`))
  const tasks = work.filter((e) => e.name === 'RunTask').sort((a, b) => b.dur - a.dur)
  const long = tasks.filter((e) => e.dur / 1000 > frame)
  const busy = tasks.map((e) => (e.tdur ?? e.dur) / 1000).sort((a, b) => b - a)
  const list = (times) => times.slice(0, 5).map((ms) => ms.toFixed(1)).join(', ')
  console.log(`${name}: ${tasks.length} tasks`)
  console.log(`  by the clock ${long.length} longer than a frame, the longest ${list(tasks.map((e) => e.dur / 1000))} ms`)
  console.log(`  by processor time ${busy.filter((ms) => ms > frame).length}, the longest ${list(busy)} ms`)
  console.log(`  in long tasks: ${causes(work, long)}`)
  const gaps = frames.filter((ms) => ms > 2 * frame).length
  console.log(`  ${frames.length} frames, ${gaps} of them late by a frame or more`)
}

const kinds = /^(FunctionCall|UpdateLayoutTree|Layout|PrePaint|Paint|Layerize|Commit|MinorGC|MajorGC|HitTest|ParseHTML)$/

// causes adds up the time of each kind of work in some tasks, and their share of processor time.
function causes(work, tasks) {
  const sums = new Map()
  for (const task of tasks) {
    for (const e of work) {
      if (e.pid !== task.pid || e.ts < task.ts || e.ts >= task.ts + task.dur || !kinds.test(e.name)) continue
      sums.set(e.name, (sums.get(e.name) ?? 0) + e.dur / 1000)
    }
  }
  const all = tasks.reduce((sum, e) => sum + e.dur, 0)
  const used = tasks.reduce((sum, e) => sum + (e.tdur ?? e.dur), 0)
  const parts = [...sums].sort((a, b) => b[1] - a[1]).map(([kind, ms]) => `${kind} ${Math.round(ms)} ms`)
  return `${parts.join(', ')}; they had the processor for ${Math.round((100 * used) / Math.max(1, all))} % of their time`
}

// scroll moves an element by one step in every frame, and returns the duration of each frame.
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
    await rail.waitFor({ state: 'detached' }) // the first conversation has another topic
    return frames
  })
})

after(closeBrowser)

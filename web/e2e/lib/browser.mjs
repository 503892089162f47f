// Debian's Chromium, driven by playwright-core. Every page is watched: a
// console message, an uncaught error, or a violation of its policy fails the
// test.
import assert from 'node:assert/strict'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium } from 'playwright-core'
import { atEnd, patience } from './server.mjs'

function find(name) {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(dir, name), constants.X_OK)
      return join(dir, name)
    } catch {
      // not installed here
    }
  }
}

const path = process.env.CHROMIUM ?? find('chromium') ?? find('chromium-browser') ?? find('google-chrome')

// skip is the reason why there are no tests. It is only for machines without a
// browser; CI must have one.
export const skip = path === undefined && !process.env.CI ? 'chromium is not installed' : false

let started

async function browser() {
  assert(path !== undefined, 'chromium is not in PATH: apt-get install chromium')
  started ??= chromium.launch({ executablePath: path, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
  return started
}

export async function closeBrowser() {
  if (started) await (await started).close()
  started = undefined
}

// The browser logs a message if a socket is closed while it is being opened.
// That is not a failure.
const left = /WebSocket is closed before the connection is established/

// whileAway is what pages log while their server is stopped, starting or gone.
export const whileAway = /ERR_|WebSocket|502|503/

// A Visitor is one person's browser: tabs that share cookies and storage.
export class Visitor {
  static async come(
    t,
    server,
    { width = 1280, height = 800, dark = false, reducedMotion = 'reduce', tolerate = [] } = {},
  ) {
    const visitor = new Visitor()
    visitor.server = server
    visitor.troubles = []
    visitor.tolerate = [left, ...tolerate]
    visitor.context = await (
      await browser()
    ).newContext({
      baseURL: server.url,
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion,
      locale: 'en-GB',
    })
    visitor.context.setDefaultTimeout(patience)
    visitor.context.setDefaultNavigationTimeout(patience)
    await visitor.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (e) =>
        console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`),
      )
    })
    atEnd(t, async () => {
      await visitor.context.close()
      assert.deepEqual(visitor.troubles, [], 'what the pages complained about')
    })
    return visitor
  }

  // expect allows the pages to log some messages from now on: after a test
  // stops the server, they must.
  expect(...patterns) {
    this.tolerate.push(...patterns)
  }

  async tab(at = '/') {
    const page = await this.context.newPage()
    const trouble = (text) => {
      if (!this.tolerate.some((pattern) => pattern.test(text))) this.troubles.push(text)
    }
    page.on('pageerror', (error) => trouble(`thrown: ${error.stack ?? error}`))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning')
        trouble(`${message.type()}: ${message.text()} (${message.location().url})`)
    })
    await page.goto(at)
    return page
  }
}

import { until } from './server.mjs'

// Chat is a conversation as users see it.
export class Chat {
  constructor(page) {
    this.page = page
    this.log = page.getByRole('log', { name: 'Conversation' })
    this.field = page.getByLabel(/^Message /)
    this.stop = page.getByRole('button', { name: 'Stop', exact: true })
    this.queued = page.getByRole('list', { name: 'Queued messages' })
    this.card = this.log.getByRole('article', { name: /wants to|asks a question|the outcome is unknown/ })
  }

  async say(text) {
    await this.field.fill(text)
    await this.field.press('Enter')
  }

  // answers returns the texts of the agents, the latest last.
  get answers() {
    return this.log.getByRole('article', { name: /^(?!You ).* said$/ })
  }

  // ended waits until a text was shown and no run is active.
  async ended(words) {
    await this.answers.getByText(words).first().waitFor()
    await this.idle()
  }

  async idle() {
    await until(
      'nothing runs',
      async () => (await this.stop.count()) === 0 && (await this.log.locator('[aria-busy="true"]').count()) === 0,
    )
  }

  // picture returns what a reader sees, without times and folded content.
  async picture() {
    const rows = await this.log.getByRole('article').evaluateAll((articles) =>
      articles.map(
        (a) =>
          `${a.getAttribute('aria-label')}: ${a.innerText
            .replace(/\b\d+(\.\d+)? ?m?s\b|\d\d:\d\d(:\d\d)?/g, '')
            .replace(/\s+/g, ' ')
            .trim()}`,
      ),
    )
    return rows.join('\n')
  }
}

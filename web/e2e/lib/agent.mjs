// DebugConsole is document 000's chat with one agent.
export class DebugConsole {
  constructor(page) {
    this.page = page
    this.panel = page.getByRole('region', { name: 'Debug console' })
    this.status = this.panel.getByRole('status', { name: 'Connection' })
    this.log = this.panel.getByRole('log', { name: 'Messages' })
    this.field = this.panel.getByRole('textbox', { name: /^Message / })
  }

  connected() {
    return this.status.getByText(/Connected$/).waitFor()
  }

  async say(text) {
    await this.field.fill(text)
    await this.panel.getByRole('button', { name: 'Send' }).click()
  }
}

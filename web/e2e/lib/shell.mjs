// Rail is the console's frame, found by role and name as users and screen
// readers do.
export class Rail {
  constructor(page) {
    this.page = page
    this.conversations = page.getByRole('navigation', { name: 'Conversations' })
    this.pages = page.getByRole('navigation', { name: 'Pages' })
    this.search = page.getByRole('searchbox', { name: 'Search conversations' })
    this.palette = page.getByRole('dialog', { name: 'Command palette' })
    this.help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    this.main = page.getByRole('main')
  }

  conversation(title) {
    return this.conversations.getByRole('link', { name: title })
  }

  goTo(page) {
    return this.pages.getByRole('link', { name: page }).click()
  }

  async act(title, action) {
    const button = this.conversations.getByRole('button', { name: `Actions for ${title}` })
    await button.focus()
    await button.press('Enter')
    await this.page.getByRole('menuitem', { name: action }).click()
  }
}

// Parts of the console that are loaded on demand, or just before.

import { late } from '../../ui/late'

export const panel = late(() => import('./ChatPanel').then((module) => module.ChatPanel))
export const markdown = late(() => import('./Markdown').then((module) => module.Markdown))

// preloadChat loads the conversation view when the user is about to start one.
export function preloadChat(): void {
  void panel.load()
  void markdown.load()
}

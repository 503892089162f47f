// Parts of the console that are loaded on demand, or just before.

export const loadPanel = () => import('./ChatPanel')
export const loadMarkdown = () => import('./Markdown')

// preloadChat loads the conversation view when the user is about to start one.
export function preloadChat(): void {
  void loadPanel()
  void loadMarkdown()
}

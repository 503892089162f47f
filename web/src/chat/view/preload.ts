// What is fetched when it is needed, or just before.

export const loadPanel = () => import('./ChatPanel')
export const loadMarkdown = () => import('./Markdown')

// preloadChat is for when somebody is about to begin a conversation.
export function preloadChat(): void {
  void loadPanel()
  void loadMarkdown()
}

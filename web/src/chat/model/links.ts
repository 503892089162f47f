// safeTarget returns the address that a link may lead to; null: it may not be
// followed.
export function safeTarget(address: string): URL | null {
  try {
    const url = new URL(address)
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null
  } catch {
    return null // a relative address would lead into the console
  }
}

// targetName describes the target of a link in a few words.
export function targetName(url: URL): string {
  return url.protocol === 'mailto:' ? url.pathname : url.host
}

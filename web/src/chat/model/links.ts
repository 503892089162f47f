// safeTarget is an address a link may lead to; null: none it may.
export function safeTarget(address: string): URL | null {
  try {
    const url = new URL(address)
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null
  } catch {
    return null // relative ones would lead into the console
  }
}

// targetName says where a link leads, in a few words.
export function targetName(url: URL): string {
  return url.protocol === 'mailto:' ? url.pathname : url.host
}

import { visible, type Part } from '../../ui/visible'

// Joiners and variations belong to emoji and to many scripts.
const used = /^[\u200c\u200d\ufe00-\ufe0f\u00ad]$/

export function proseParts(text: string): Part[] {
  return visible(text).map((part) => {
    const harmless =
      part.trick === 'space' || part.trick === 'lookalike' || (part.trick === 'invisible' && used.test(part.text))
    return harmless ? { text: part.text, shown: part.text } : part
  })
}

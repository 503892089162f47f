import { short } from '../../ui/amounts'
import type { Model } from '../../wire/native.generated'

// aboutModel describes a model by its window and its price, as far as they are known.
export function aboutModel({ context_window: window, input_price: read, output_price: written }: Model): string {
  return [
    window !== undefined && `${short(window)} tokens`,
    read !== undefined && written !== undefined && `$${read} in, $${written} out per million`,
  ]
    .filter(Boolean)
    .join(' · ')
}

// Images and PDF documents of a message, within the limits of the server.

export interface Picture {
  name: string
  url: string // a data URL
  bytes: number
}

export const maxImages = 4
export const maxBytes = 4 * 1024 * 1024 // for all images together
const pdf = 'application/pdf'
const types = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', pdf]
export const accept = types.join(',')

interface Chosen {
  pictures: Picture[]
  problems: string[] // why other files were rejected
}

// choose adds files to the chosen images, and says for each rejected file why it was rejected.
export async function choose(have: Picture[], files: File[]): Promise<Chosen> {
  const pictures = [...have]
  const problems: string[] = []
  for (const file of files) {
    const all = pictures.reduce((sum, picture) => sum + picture.bytes, 0)
    if (!types.includes(file.type)) problems.push(`${file.name} is not a PNG, JPEG, GIF or WebP image, or a PDF.`)
    else if (pictures.length >= maxImages)
      problems.push(`${file.name} was not added: a message has at most ${maxImages} images and PDFs.`)
    else if (all + file.size > maxBytes)
      problems.push(`${file.name} was not added: the images and PDFs of a message have at most 4 MiB.`)
    else pictures.push({ name: file.name, url: named(await read(file), file.name), bytes: file.size })
  }
  return { pictures, problems }
}

function read(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error ?? new Error('unreadable'))
    reader.readAsDataURL(file)
  })
}

// named adds the file name to the data URL of a document. The server reads it there.
function named(url: string, name: string): string {
  const head = `data:${pdf};`
  return url.startsWith(head) ? `${head}name=${encodeURIComponent(name)};${url.slice(head.length)}` : url
}

// urlOf is the data URL of a file in the log; empty: the browser does not get this type.
export function urlOf({ type, data, name }: { type: string; data: string; name?: string }): string {
  return types.includes(type) ? named(`data:${type};base64,${data}`, name ?? '') : ''
}

// documentIn returns the name of the document in a data URL; undefined: it is an image.
export function documentIn(url: string): string | undefined {
  return new RegExp(`^data:${pdf};name=([^;,]*)`).exec(url)?.slice(1).map(decodeURIComponent)[0]
}

export default function KeysView() {
  return null;
}

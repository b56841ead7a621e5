export default function StartView() {
  return null;
}

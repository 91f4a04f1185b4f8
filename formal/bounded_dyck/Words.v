(** Words of brackets: which prefixes a closing query has, and what a layer of the paper's kind gathers from each.

    There are k types of brackets and D levels. A state is START, or a bracket with the depth behind it. *)

Require Import Reals Lra Lia List Arith.
From Formal.common Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Inductive bracket := Open (i : nat) | Close (i : nat).
Inductive state := Start | At (b : bracket) (depth : nat).

(** The stack of unmatched types, the last one first: None where a word is no prefix of bounded Dyck. *)
Fixpoint run (k D : nat) (stack : list nat) (w : list bracket) : option (list nat) :=
  match w with
  | [] => Some stack
  | Open i :: rest => if andb (i <? k) (length stack <? D) then run k D (i :: stack) rest else None
  | Close i :: rest =>
      match stack with
      | j :: below => if i =? j then run k D below rest else None
      | [] => None
      end
  end.

(** A prefix that ends with a closed bracket of type j at depth d, where a bracket of type t is the last unmatched. *)
Definition asks (k D j d t : nat) (w : list bracket) : Prop :=
  exists before below, w = before ++ [Close j] /\ run k D [] w = Some (t :: below) /\ length (t :: below) = d.

Definition behind (d : nat) (b : bracket) : nat := match b with Open _ => S d | Close _ => pred d end.

(** The sum over a word's brackets of what their states add, from depth d on. *)
Fixpoint gather (add : state -> R) (d : nat) (w : list bracket) : R :=
  match w with
  | [] => 0
  | b :: rest => add (At b (behind d b)) + gather add (behind d b) rest
  end.

(** (12), and the sum before LN of a prefix at the query q, START with it. *)
Definition u (V : state -> nat -> R) (Z : state -> state -> R) (q s : state) (e : nat) : R := V s e * exp (Z q s).
Definition before_LN (V : state -> nat -> R) (Z : state -> state -> R) (q : state) (w : list bracket) (e : nat) : R :=
  u V Z q Start e + gather (fun s => u V Z q s e) 0 w.

(** What a pair of type i and level l adds. *)
Definition pair (add : state -> R) (i l : nat) : R := add (At (Open i) l) + add (At (Close i) (pred l)).

Fixpoint pairs (n i : nat) : list bracket :=
  match n with O => [] | S m => Open i :: Close i :: pairs m i end.

(** c levels that are opened and closed once around a word. *)
Fixpoint nest (c : nat) (inner : list bracket) : list bracket :=
  match c with O => inner | S m => Open 0 :: nest m inner ++ [Close 0] end.

Definition depth (d : nat) (w : list bracket) : nat := fold_left behind w d.

Lemma gather_app add w v d : gather add d (w ++ v) = gather add d w + gather add (depth d w) v.
Proof. revert d. induction w as [|b w IH]; intro d; simpl; [ring|]. rewrite IH. unfold depth. simpl. ring. Qed.

Lemma depth_pairs n i d : depth d (pairs n i) = d.
Proof. induction n; [reflexivity|exact IHn]. Qed.

Lemma gather_pairs add n i d : gather add d (pairs n i) = INR n * pair add i (S d).
Proof.
  induction n; [simpl; ring|]. rewrite S_INR. cbn [pairs gather behind]. cbn [pred]. rewrite IHn. unfold pair. simpl. ring.
Qed.

Lemma depth_app d w v : depth d (w ++ v) = depth (depth d w) v.
Proof. apply fold_left_app. Qed.

Lemma depth_opens l d : depth d (map Open l) = (d + length l)%nat.
Proof. revert d. induction l as [|i l IH]; intro d; simpl; [lia|]. unfold depth in *. simpl. rewrite IH. lia. Qed.

Lemma nest_depth c inner d : (forall m, depth m inner = m) -> depth d (nest c inner) = d.
Proof.
  intro H. revert d. induction c; intro d; simpl; [apply H|].
  change (depth (S d) (nest c inner ++ [Close 0]) = d). rewrite depth_app, IHc. reflexivity.
Qed.

Lemma nest_gather add c inner d : (forall m, depth m inner = m) ->
  gather add d (nest c inner) = Sum c (fun m => pair add 0 (d + S m)) + gather add (d + c) inner.
Proof.
  intro H. revert d. induction c; intro d.
  - simpl. rewrite Nat.add_0_r. ring.
  - cbn [nest]. cbn [gather behind]. rewrite gather_app, IHc, (nest_depth c inner (S d) H). cbn [gather behind pred].
    assert (E : Sum (S c) (fun m => pair add 0 (d + S m))
      = pair add 0 (S d) + Sum c (fun m => pair add 0 (S d + S m))).
    { clear. induction c; [simpl; replace (d + 1)%nat with (S d) by lia; ring|].
      cbn [Sum] in *. rewrite IHc. replace (d + S (S c))%nat with (S d + S c)%nat by lia. ring. }
    rewrite E. replace (S d + c)%nat with (d + S c)%nat by lia. unfold pair at 2. simpl pred. ring.
Qed.

Lemma run_app k D s w v s' : run k D s w = Some s' -> run k D s (w ++ v) = run k D s' v.
Proof.
  revert s. induction w as [|[i|i] w IH]; intros s H; simpl in *.
  - now injection H as ->.
  - destruct (andb (i <? k) (length s <? D)); [now apply IH|discriminate].
  - destruct s as [|j s]; [discriminate|]. destruct (i =? j); [now apply IH|discriminate].
Qed.

Lemma run_pairs k D s n i : (i < k)%nat -> (length s < D)%nat -> run k D s (pairs n i) = Some s.
Proof.
  intros Li Ls. induction n; [reflexivity|]. simpl.
  apply Nat.ltb_lt in Li, Ls. rewrite Li, Ls. simpl. rewrite Nat.eqb_refl. exact IHn.
Qed.

Lemma run_opens k D l s : Forall (fun i => (i < k)%nat) l -> (length s + length l <= D)%nat ->
  run k D s (map Open l) = Some (rev l ++ s).
Proof.
  revert s. induction l as [|i l IH]; intros s F L; [reflexivity|]. inversion F as [|? ? Hi Hl]; subst. simpl in *.
  assert (Ls : (length s < D)%nat) by lia. apply Nat.ltb_lt in Hi, Ls. rewrite Hi, Ls. simpl.
  rewrite IH; [now rewrite <- app_assoc|exact Hl|simpl; lia].
Qed.

Lemma run_nest k D c inner s : (0 < k)%nat -> (length s + c <= D)%nat ->
  (forall s', length s' = (length s + c)%nat -> run k D s' inner = Some s') -> run k D s (nest c inner) = Some s.
Proof.
  intros Pk. revert s. induction c; intros s L H; simpl.
  - apply H. lia.
  - assert (Ls : (length s < D)%nat) by lia. apply Nat.ltb_lt in Pk, Ls. rewrite Pk, Ls. simpl.
    rewrite (run_app k D (0%nat :: s) (nest c inner) [Close 0] (0%nat :: s)); [reflexivity|].
    apply Nat.ltb_lt in Pk. apply IHc; [simpl; lia|]. intros s' E. apply H. simpl in E. lia.
Qed.

Lemma length_pairs n i : length (pairs n i) = (2 * n)%nat.
Proof. induction n; simpl; [reflexivity|]. rewrite IHn. lia. Qed.

Lemma length_nest c inner : length (nest c inner) = (2 * c + length inner)%nat.
Proof. induction c; simpl; [lia|]. rewrite app_length, IHc. simpl. lia. Qed.

(** (16): the types w open the levels 1 to d, and a pair of type j closes the prefix. *)
Definition prefix16 (w : list nat) (j : nat) : list bracket := map Open w ++ [Open j; Close j].

(** The same with n pairs of type i and level l before the last bracket. Where (16) does not reach that level, levels
    between are opened once. *)
Definition lengthened (w : list nat) (j n i l : nat) : list bracket :=
  if l <=? S (length w)
  then map Open (firstn (pred l) w) ++ pairs n i ++ map Open (skipn (pred l) w) ++ [Open j; Close j]
  else map Open w ++ [Open j] ++ nest (l - 2 - length w) (pairs n i) ++ [Close j].

(** How many levels are opened once. *)
Definition between (d l : nat) : nat := (l - 2 - d)%nat.

Lemma lengthened_length w j n i l : (1 <= l)%nat ->
  length (lengthened w j n i l) = (length w + 2 + 2 * n + 2 * between (length w) l)%nat.
Proof.
  intro Pl. unfold lengthened, between. destruct (Nat.leb_spec l (S (length w))) as [L|L].
  - rewrite !app_length, !map_length, length_pairs, firstn_length, skipn_length. simpl. lia.
  - rewrite !app_length, map_length, length_nest, length_pairs. simpl. lia.
Qed.

Lemma Forall_part (P : nat -> Prop) w m : Forall P w -> Forall P (firstn m w) /\ Forall P (skipn m w).
Proof. intro F. rewrite <- (firstn_skipn m w) in F. now apply Forall_app in F. Qed.

(** It is a prefix of the language with the same query and the same last unmatched type. *)
Lemma lengthened_asks k D w t j n i l :
  (j < k)%nat -> (i < k)%nat -> Forall (fun s => (s < k)%nat) (w ++ [t]) -> (S (length w) < D)%nat -> (1 <= l <= D)%nat ->
  asks k D j (S (length w)) t (lengthened (w ++ [t]) j n i l).
Proof.
  intros Lj Li F Lw Ll. set (v := w ++ [t]) in *.
  assert (Lv : length v = S (length w)) by (unfold v; rewrite app_length; simpl; lia).
  assert (Rv : rev v = t :: rev w) by (unfold v; now rewrite rev_app_distr).
  assert (Tail : run k D (rev v) [Open j; Close j] = Some (rev v)).
  { simpl. rewrite rev_length, Lv. apply Nat.ltb_lt in Lj, Lw. rewrite Lj, Lw. simpl. now rewrite Nat.eqb_refl. }
  assert (Goal : run k D [] (lengthened v j n i l) = Some (rev v)).
  { unfold lengthened. destruct (Nat.leb_spec l (S (length v))) as [L|L].
    - destruct (Forall_part _ v (pred l) F) as [F1 F2].
      pose proof (firstn_length (pred l) v) as Q1. pose proof (skipn_length (pred l) v) as Q2.
      rewrite (run_app k D [] _ _ (rev (firstn (pred l) v) ++ [])) by (apply run_opens; [exact F1|simpl; lia]).
      rewrite app_nil_r.
      rewrite (run_app k D _ (pairs n i) _ (rev (firstn (pred l) v)))
        by (apply run_pairs; [exact Li|rewrite rev_length; lia]).
      rewrite (run_app k D _ (map Open (skipn (pred l) v)) _ (rev (skipn (pred l) v) ++ rev (firstn (pred l) v)))
        by (apply run_opens; [exact F2|rewrite rev_length; lia]).
      rewrite <- rev_app_distr, firstn_skipn. exact Tail.
    - rewrite (run_app k D [] _ _ (rev v ++ [])) by (apply run_opens; [exact F|simpl; lia]). rewrite app_nil_r.
      rewrite (run_app k D _ [Open j] _ (j :: rev v)).
      + rewrite (run_app k D _ (nest (l - 2 - length v) (pairs n i)) _ (j :: rev v)).
        * simpl. now rewrite Nat.eqb_refl.
        * apply run_nest; [lia|simpl; rewrite rev_length; lia|]. intros s' E. apply run_pairs; [exact Li|].
          simpl in E. rewrite rev_length in E. lia.
      + simpl. rewrite rev_length, Lv. apply Nat.ltb_lt in Lj, Lw. now rewrite Lj, Lw. }
  assert (Ends : exists before, lengthened v j n i l = before ++ [Close j]).
  { unfold lengthened. destruct (l <=? S (length v)).
    - exists (map Open (firstn (pred l) v) ++ pairs n i ++ map Open (skipn (pred l) v) ++ [Open j]).
      now rewrite <- !app_assoc.
    - exists (map Open v ++ [Open j] ++ nest (l - 2 - length v) (pairs n i)). now rewrite <- !app_assoc. }
  destruct Ends as [before E]. exists before, (rev w). split; [exact E|]. split.
  - now rewrite Goal, Rv.
  - simpl. now rewrite rev_length.
Qed.

(** What it gathers: (16)'s sum, n times what a pair adds, and the levels between once. *)
Lemma lengthened_gather add w j n i l : (1 <= l)%nat ->
  gather add 0 (lengthened w j n i l)
  = gather add 0 (prefix16 w j) + Sum (between (length w) l) (fun m => pair add 0 (length w + 2 + m))
    + INR n * pair add i l.
Proof.
  intro Pl. unfold lengthened, prefix16, between. destruct (Nat.leb_spec l (S (length w))) as [L|L].
  - replace (l - 2 - length w)%nat with 0%nat by lia. cbn [Sum].
    rewrite <- (firstn_skipn (pred l) w) at 3. rewrite map_app, <- app_assoc.
    rewrite !(gather_app _ (map Open (firstn (pred l) w))), (gather_app _ (pairs n i)), depth_pairs, gather_pairs.
    rewrite depth_opens, firstn_length. replace (0 + Init.Nat.min (pred l) (length w))%nat with (pred l) by lia.
    replace (S (pred l)) with l by lia. ring.
  - rewrite !gather_app, depth_opens, (nest_gather add _ _ _ (fun m => depth_pairs n i m)),
      (nest_depth _ _ _ (fun m => depth_pairs n i m)), gather_pairs.
    unfold depth. cbn [gather behind pred fold_left Nat.add].
    replace (S (S (length w + (l - 2 - length w)))) with l by lia.
    rewrite (Sum_ext _ (fun m => pair add 0 (S (length w) + S m)) (fun m => pair add 0 (length w + 2 + m)))
      by (intros; f_equal; lia). ring.
Qed.
